// Package hostfile knows the files in which programs keep MCP servers: one table of hosts (table.go),
// with the place of the servers in each (find.go), the meaning of every key of an entry (keys.go) and
// the syntax of variables (variables.go). It converts a file into entries under dynmcp's keys, with
// dynmcp's references; it decodes and starts nothing.
package hostfile
