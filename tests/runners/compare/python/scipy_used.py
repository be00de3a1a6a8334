# ways: cold started preloaded
import scipy.optimize
import scipy.stats

print(scipy.optimize.brentq(lambda x: x * x - 2, 0, 2), scipy.stats.norm.cdf(1.96))
