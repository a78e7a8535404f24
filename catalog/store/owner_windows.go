package store

import "io/fs"

// checkOwner accepts every file: the user's directories are the user's there.
func checkOwner(fs.FileInfo) error { return nil }
