package cli

// Version is dynmcp's version, defined only here: the tag of a release must be "v" and this, and all
// packages take it from here.
const Version = "0.2.0"
