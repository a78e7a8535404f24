// Package child is the guard process: a program that imports package guard runs it when it was
// executed as a guard.
//
// It is entered from an init function and never returns. Every start of a server waits for
// it, so it must not wait for the initialisation of the rest of the program: Go initialises
// packages in the order of their names, each as soon as its imports are. Those that os and
// os/signal need come early; package unicode, and so strings, bytes and fmt, come after
// net, crypto and encoding, a millisecond later.
package child
