//go:build !race

package mcptest

// RaceEnabled says that the programs are built with the race detector, under which
// they take many times the memory.
const RaceEnabled = false
