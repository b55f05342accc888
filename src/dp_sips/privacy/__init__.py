"""The reviewed place: everything that the guarantee rests on. Start with README.md beside this file."""
