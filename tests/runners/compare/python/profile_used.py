# differs: [\d.]+ seconds
# differs: ^ +\d+ .*
import cProfile

cProfile.run("sum(range(1000))")
