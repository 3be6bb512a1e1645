# frozen_string_literal: true

require "fileutils"
require "open3"
require_relative "command_line"

# Programs with ActiveRecord, Sequel and SQLite. They use the gems of examples/shop, which are installed once.
module DatabaseProgram
  include CommandLine

  SHOP = File.join(Checkout::ROOT, "examples/shop")
  OLD = Gem::Version.new(RUBY_VERSION) < Gem::Version.new("3.2")
  # Bundler's settings. script/demo has the same.
  GEMS = {
    "BUNDLE_PATH" => File.join(Checkout::ROOT, "vendor/shop"),
    "BUNDLE_APP_CONFIG" => File.join(Checkout::ROOT, "tmp/shop-bundle"),
    "BUNDLE_SILENCE_ROOT_WARNING" => "1",
    "BUNDLE_GEMFILE" => File.join(SHOP, "gemfiles", "#{OLD ? "rails_7_2" : "rails_8_1"}.gemfile")
  }.freeze

  # Authors with two books each, in ActiveRecord or Sequel. A page queries `per_author` authors one by one.
  PRELUDES = {
    "active_record" => <<~'RUBY',
      require "active_record"
      ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: ":memory:", pool: 20)
      ActiveRecord::Schema.verbose = false
      ActiveRecord::Schema.define do
        create_table(:authors) { |table| table.string :name }
        create_table(:books) { |table| table.integer :author_id; table.string :title }
      end
      class Author < ActiveRecord::Base; end
      class Book < ActiveRecord::Base; belongs_to :author; end
      40.times do |number|
        author = Author.create!(name: "secret name #{number}")
        2.times { |book| Book.create!(author: author, title: "secret title #{book}") }
      end
    RUBY
    "sequel" => <<~'RUBY'
      require "sequel"
      DB = Sequel.sqlite
      DB.create_table(:authors) { primary_key :id; String :name }
      DB.create_table(:books) { primary_key :id; Integer :author_id; String :title }
      40.times do |number|
        author = DB[:authors].insert(name: "secret name #{number}")
        2.times { |book| DB[:books].insert(author_id: author, title: "secret title #{book}") }
      end
    RUBY
  }.freeze

  # Runs once in a run of the tests.
  def self.install
    @install ||= begin
      FileUtils.mkdir_p(GEMS["BUNDLE_APP_CONFIG"])
      bundle = [GEMS.merge("RUBYOPT" => nil), CommandLine::RUBY, File.join(SHOP, "bin/bundle")]
      File.open(File.join(Checkout::ROOT, "tmp/shop-bundle.lock"), File::RDWR | File::CREAT) do |lock|
        lock.flock(File::LOCK_EX)
        _, status = Open3.capture2e(*bundle, "check")
        output, status = Open3.capture2e(*bundle, "install") unless status.success?
        status.success? ? :installed : output
      end
    end
  end

  def setup
    super
    installed = DatabaseProgram.install
    flunk "the gems of examples/shop can't be installed: #{installed}" unless installed == :installed
  end

  # Runs the program under `pitwall profile`. @return [Result]
  def record_database(library, source, *options, env: {})
    File.write(file("app.rb"), <<~RUBY_PROGRAM)
      require 'bundler/setup'
      $LOAD_PATH.unshift(ENV.fetch('TEST_PITWALL'))
      require 'pitwall'
      #{PRELUDES.fetch(library)}
      load './page.rb'
    RUBY_PROGRAM
    File.write(file("page.rb"), source)
    library_path = ENV["TEST_LIB"] || File.join(Checkout::ROOT, "lib")
    settings = GEMS.merge("TEST_PITWALL" => library_path).merge(env)
    pitwall("profile", "--mode", "signal", "--record", "a.pit", *options, "--", RUBY, "-W0", "app.rb", env: settings)
  end
end
