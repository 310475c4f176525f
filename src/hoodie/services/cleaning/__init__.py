"""File versions nobody needs go: policies, plans, the cleaner."""
