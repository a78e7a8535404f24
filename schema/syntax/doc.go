// Package syntax reads, prints and edits the JSON and YAML of config files. It knows
// nothing of the keys in them.
//
// A file is parsed into a tree of nodes with positions (json.go, yaml.go; node.go, both
// give the same tree). A tree is printed as JSON or YAML (print.go). To change a file
// is to change its text where one member stands (edit.go): comments and layout of the
// rest stay (edit_json.go, edit_yaml.go).
//
// An error has a position and never quotes the file.
package syntax
