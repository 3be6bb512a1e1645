# frozen_string_literal: true

require_relative "lib/pitwall/version"

Gem::Specification.new do |spec|
  spec.name = "pitwall"
  spec.version = Pitwall::VERSION
  spec.summary = "A performance lab for Ruby: measure, profile, fix, measure again"
  spec.description = "The command `pitwall`: it profiles any Ruby command without touching its output, signals or " \
                     "exit status, and shows where the time went, as text, JSON, pages and the field's formats."
  spec.authors = ["The Pitwall developers"]
  spec.homepage = "https://rubygems.org/gems/pitwall"
  spec.license = "MIT"
  spec.required_ruby_version = ">= 3.1"
  spec.metadata = { "rubygems_mfa_required" => "true" }

  core = Gem::Specification.load(File.expand_path("pitwall-core.gemspec", __dir__)).files
  spec.files = Dir.chdir(__dir__) do
    all = Dir["exe/*", "lib/**/*.rb", "lib/pitwall/**/*.{html,js,css,json}", "doc/**/*.md", "README.md", "CHANGELOG.md"]
    (all.sort - core) | Dir["LICENSE*"]
  end.reject { |file| file.start_with?("lib/pitwall/native/") }
  spec.bindir = "exe"
  spec.executables = ["pitwall"]

  # Readers and collectors share the file format, so both gems are released together.
  spec.add_dependency "pitwall-core", Pitwall::VERSION
  spec.add_dependency "google-protobuf", "~> 4.30"
  spec.add_dependency "pastel", "~> 0.8"
  spec.add_dependency "ruby-progressbar", "~> 1.13"
  # `pitwall history`. The gem pg, which needs libpq, is the user's choice.
  spec.add_dependency "sequel", "~> 5.80"
  spec.add_dependency "sqlite3", "~> 2.0"
  spec.add_dependency "unicode-display_width", "~> 3.1"
end
