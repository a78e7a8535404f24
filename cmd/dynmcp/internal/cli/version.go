package cli

// Version is dynmcp's own, and stands nowhere else: the tag of a release must be
// "v" and this, and everything that is packaged takes it from here.
const Version = "0.2.0"
