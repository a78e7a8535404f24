//go:build !linux && !windows

package mcptest

// Processes finds no processes on this system.
func Processes(string) []int { return nil }

func zombie(int) bool { return false }

func commandLine(int) string { return "command unknown" }
