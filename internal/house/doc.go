// Package house has the tests of the project as a whole: its sizes, its imports, its documents, and which
// functions open files.
package house
