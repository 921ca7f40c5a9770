"""The command line: each file parses, calls and prints."""
