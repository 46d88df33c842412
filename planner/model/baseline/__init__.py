"""What models say before anything is measured: links, sites, and backbones of providers."""
