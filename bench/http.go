package main

var httpScenarios = []scenario{
	{"HTTP, 100 B", 100, text, 1, 3000, true, how{}},
	{"HTTP, 10 KB", 10 << 10, text, 1, 2000, true, how{}},
	{"HTTP, 1 MB", 1 << 20, text, 1, 100, true, how{}},
	{"HTTP, 100 B", 100, text, 64, 12000, true, how{}},
	{"HTTP, 10 KB", 10 << 10, text, 64, 8000, true, how{}},
	{"HTTP, 1 MB", 1 << 20, text, 64, 256, true, how{}},
}

// callingHTTP measures the scenarios that are wanted, from pipes to an
// upstream over HTTP. The pump is then httppump.
func callingHTTP(bin binaries, wanted func(scenario) bool, rounds int) error {
	upstream, url, err := startServer([]string{bin.httpupstream})
	if err != nil {
		return err
	}
	defer upstream.terminate()
	config, err := bin.write("http.json", `{"mcp": {"upstream": {"url": %q}}}`, url)
	if err != nil {
		return err
	}
	variants := []variant{{"pump", []string{bin.httppump, url}, "upstream/echo", onPipes}, {"dynmcp", onStdio(bin.dynmcp, config), "upstream/echo", onPipes}}
	for _, v := range bin.also {
		variants = append(variants, variant{v.name, onStdio(v.argv[0], config), "upstream/echo", onPipes})
	}
	for _, s := range httpScenarios {
		if wanted(s) {
			if err := bin.measure(variants, s, rounds); err != nil {
				return err
			}
		}
	}
	return nil
}
