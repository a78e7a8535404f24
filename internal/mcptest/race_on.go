//go:build race

package mcptest

// RaceEnabled means that the programs are built with the race detector, with which they take many
// times the memory.
const RaceEnabled = true
