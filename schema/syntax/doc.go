// Package syntax reads, prints and edits the JSON and YAML of config files. It does not
// know their keys.
//
// A file is parsed into a tree of nodes with positions (node.go), the same for JSON
// (json.go) and YAML (yaml.go). A tree is printed as JSON or YAML (print.go). An edit
// changes only the text of one member (edit.go, edit_json.go, edit_yaml.go): comments
// and layout of the rest stay.
//
// An error has a position and never quotes the file.
package syntax
