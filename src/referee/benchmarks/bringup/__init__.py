"""Bring-up: can an agent, all alone, make a real project run?"""
