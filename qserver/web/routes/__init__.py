"""All routes but the hot ones: `bridge` leads to handlers behind `rules`, a quart-trio app."""
