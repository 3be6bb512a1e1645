# What the tests share: the shop in the environment "test", with a database of its own.

ENV["RAILS_ENV"] = "test"
require_relative "../boot"
require "fileutils"
require "tmpdir"

FileUtils.mkdir_p ENV["SHOP_TMP"]
directory = Dir.mktmpdir("test-", ENV["SHOP_TMP"])
ENV["SHOP_DATABASE"] = File.join(directory, "shop.sqlite3")
require_relative "../config/environment"
Shop::Database.prepare

require "minitest/autorun"
Minitest.after_run { FileUtils.rm_rf(directory) }

# A test that does the same several times, to be measured: ten times is less subject to chance than once.
module Repeated
  # The first request compiles templates and fills caches. It is no part of what is measured.
  def repeatedly(&request)
    request.call
    ten_times(&request)
  end

  # What to measure: pitwall trace --only-under 'Repeated#ten_times' -- …
  def ten_times(&request)
    10.times(&request)
  end
end
