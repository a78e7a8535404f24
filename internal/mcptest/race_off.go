//go:build !race

package mcptest

const raceEnabled = false
