# frozen_string_literal: true

require_relative "lib/pitwall/version"

Gem::Specification.new do |spec|
  spec.name = "pitwall-core"
  spec.version = Pitwall::VERSION
  spec.summary = "The part of Pitwall that runs inside your program"
  spec.description = "Pitwall's collectors: a C extension and the little Ruby that starts it. It depends on no gem, " \
                     "so it can stand in any Gemfile. The command that starts it and reads its recordings is the gem pitwall."
  spec.authors = ["The Pitwall developers"]
  spec.homepage = "https://rubygems.org/gems/pitwall"
  spec.license = "MIT"
  spec.required_ruby_version = ">= 3.1"
  spec.metadata = { "rubygems_mfa_required" => "true" }

  # What is in this gem is loaded into programs under measurement; everything else is in the gem pitwall.
  # A file is in exactly one of the two (test/gems_test.rb).
  spec.files = Dir.chdir(__dir__) do
    Dir["ext/pitwall/**/*.{c,h,rb}", "lib/pitwall.rb", "lib/pitwall/{version,errors,native,compat}.rb",
        "lib/pitwall/{ips,budget,minitest,rspec,test_unit,rack,sidekiq}.rb", # `require` paths of integrations/
        "lib/pitwall/{collect,integrations}/**/*.rb", "lib/pitwall/bench/child.rb", "doc/record-format.md", "LICENSE*"].sort
  end
  spec.extensions = ["ext/pitwall/extconf.rb"]
end
