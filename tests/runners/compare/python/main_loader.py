print(__loader__.get_source("__main__"))
print(__loader__.is_package("__main__"), __loader__.name)
