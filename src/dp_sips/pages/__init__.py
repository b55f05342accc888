"""Pages for people: a report about one release, and a place to explore plans.

Each page is one HTML file that asks the network for nothing. Whatever it shows is public: a
certificate, released items, or a plan, which no data has touched.
"""
