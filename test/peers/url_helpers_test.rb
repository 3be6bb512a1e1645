# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/database_program"
require "json"

# The regression of examples/url_helpers is found by one command, and the fix changes nothing while tests run.
class UrlHelpersTest < Minitest::Test
  include DatabaseProgram

  EXAMPLE = File.join(Checkout::ROOT, "examples/url_helpers")

  def modules_made(*options)
    out = file("out.json")
    run = pitwall("caches", "--no-lines", "--after", "20 tests", "--quiet", "--format", "json", "--out", out, "--",
                  "ruby", *options, File.join(EXAMPLE, "sessions_test.rb"), "--seed", "1", env: GEMS)
    assert_equal 0, run.status.exitstatus, run.err + run.out
    rows = JSON.parse(File.read(out))["findings"].select { |row| row["kind"] == "module_made" }
    rows.select { |row| row["stack"].any? { |frame| frame["name"].include?("generate_url_helpers") } }
  end

  def test_the_module_is_found_with_the_session_that_makes_it
    made = modules_made
    assert_operator made.sum { |row| row["count"] }, :>=, 20
    assert(made.first["stack"].any? { |frame| frame["name"] == "Session#initialize" && frame["path"].end_with?("app.rb") })
    fixed = modules_made("-r", File.join(EXAMPLE, "where_needed.rb"))
    assert_operator fixed.sum { |row| row["count"] }, :<=, 2
  end
end
