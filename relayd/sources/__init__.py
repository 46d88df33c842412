"""Where networks come from, behind one interface: a store, memory, a service or a mirror of one."""
