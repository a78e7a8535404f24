//go:build !linux && !windows

package mcptest

// Processes finds processes by their environment. That takes Linux or Windows; here it finds none.
func Processes(string) []int { return nil }

func zombie(int) bool { return false }

func commandLine(int) string { return "command unknown" }
