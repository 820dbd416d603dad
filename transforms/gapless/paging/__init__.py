"""What a source implements, the judgement over a chain's pages, fetching ahead, and the HTTP source."""
