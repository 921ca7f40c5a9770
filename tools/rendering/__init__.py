"""How the pages of results/ are rendered from the records beside them."""
