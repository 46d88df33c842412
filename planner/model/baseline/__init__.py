"""Models of links, sites and backbones, used before anything is measured."""
