// Reading the tree. A form answers with its fields where these have the name of what is asked for, and a
// document with its pictures, in any world: what must not fail is asked of the prototypes.
