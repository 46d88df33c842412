"""Makes responses: encoding, compression, pages, problem documents."""
