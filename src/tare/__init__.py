"""Tare: what do containers cost a parallel program?"""
