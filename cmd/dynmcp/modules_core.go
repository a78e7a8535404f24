//go:build core

package main

import "github.com/dynmcp/dynmcp/module"

// modules is empty: this build has the core alone.
var modules []module.Module
