"""Links as columns of figures: about 100 bytes a link, of which objects are made when asked for."""
