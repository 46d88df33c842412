"""Price documents that providers publish, or tools keep, read into price lists."""
