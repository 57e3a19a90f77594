"""What the service says about itself: OpenAPI, its documentation, its welcome."""
