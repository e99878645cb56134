"""Programs that set up, check and document the project. Make runs them, and they are
not shipped.
"""
