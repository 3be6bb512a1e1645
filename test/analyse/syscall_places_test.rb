# frozen_string_literal: true

require_relative "../test_helper"
require "pitwall/analyse"
require "pitwall/analyse/syscalls/places"

# The line that a system call counts for.
class SyscallPlacesTest < Minitest::Test
  Places = Pitwall::Analyse::Syscalls::Places
  Frame = Struct.new(:name, :path)
  # One stack: node n is called by node n - 1.
  Stack = Struct.new(:frames, :parents, :lines) do
    def frame(node) = frames[node]
  end

  RUBY = "/usr/lib/ruby"
  REQUIRE = ["Kernel#require", "<internal:#{RUBY}/vendor_ruby/rubygems/core_ext/kernel_require.rb>"].freeze
  SPEC = ["Gem::Specification.load", "#{RUBY}/vendor_ruby/rubygems/specification.rb"].freeze
  CLI = ["<top (required)>", "#{RUBY}/gems/3.1.0/gems/bundler-2.3.15/lib/bundler/cli.rb"].freeze

  def test_loaders_pass_the_blame_on
    assert_equal ["/app/shop.rb", 1, "(application)", "/app/shop.rb"], place(["<main>", "/app/shop.rb"], REQUIRE, SPEC)
    assert_equal ["/app/shop.rb", 2, "(application)", "/app/shop.rb"],
                 place(["<main>", "/usr/bin/bundle"], ["<top (required)>", "/app/shop.rb"], REQUIRE, CLI, REQUIRE)
    assert_equal ["/usr/bin/rake", 1, "(application)", "/usr/bin/rake"], place(["<main>", "/usr/bin/rake"], SPEC)
  end

  # Lines of RubyGems and Bundler count if their own commands run.
  def test_but_not_to_their_own_commands
    assert_equal [CLI[1], 3, "bundler", CLI[1]], place(["<main>", "/usr/bin/bundle"], REQUIRE, CLI, REQUIRE)
    assert_equal [SPEC[1], 2, "rubygems", "/usr/bin/gem3.1"], place(["<main>", "/usr/bin/gem3.1"], SPEC, REQUIRE)
    assert_equal ["#{RUBY}/vendor_ruby/bundler/setup.rb", 2, "bundler"],
                 place(REQUIRE, ["<top (required)>", "#{RUBY}/vendor_ruby/bundler/setup.rb"], REQUIRE).first(3)
  end

  private

  # Path, line, gem and feature of a stack, from the root. A frame's line is its number.
  def place(*stack)
    numbers = [*0..stack.size]
    Places.new(Stack.new([nil, *stack.map { |frame| Frame.new(*frame) }], [0, *numbers],
                         numbers))[stack.size].to_a.values_at(0, 1, 2, 3)
  end
end
