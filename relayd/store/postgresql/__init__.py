"""The store on a PostgreSQL server. Imported only where one is used: the driver takes 0.1 s."""
