package cli

// Version is dynmcp's version. The tag of a release must be "v" and this version.
const Version = "0.2.0"
