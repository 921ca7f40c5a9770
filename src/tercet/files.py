"""Files and folders: atomic replacement, JSON, sha256, and the cache folder."""
