"""The reviewed place: all that the guarantee rests on. Start with README.md beside this file."""
