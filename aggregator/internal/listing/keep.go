package listing

// Keep stores the last listing: one write runs at a time, and another follows if the listing has
// changed meanwhile.
func (c *Cache) Keep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unkept = true
	if !c.keeping {
		c.keeping = c.env.Work.Go(c.keepLast)
	}
}

func (c *Cache) keepLast() {
	for {
		c.mu.Lock()
		if c.keeping = c.unkept; !c.keeping {
			c.mu.Unlock()
			return
		}
		c.unkept = false
		last := c.last
		c.mu.Unlock()
		c.env.Run.Keep(c.upstream, last)
	}
}
