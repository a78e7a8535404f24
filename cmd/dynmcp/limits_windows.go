package main

// noCore does nothing: there are no core files here.
func noCore() {}
