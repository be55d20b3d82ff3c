"""Fetching pinned subjects: packages through pip and npm, repositories through git, local trees and archives."""
