"""Reading what a model server says: shapes, arguments, and whose fault a signal is. Pure."""
