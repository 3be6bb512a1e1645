# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/recorded_program"
require_relative "../support/random_calls"
require_relative "../../benchmarks/support/peers"

# Calls beside ruby-prof's, where the benchmarks have installed it (it needs Ruby 3.3). doc/tracing.md explains every difference that is
# let through here.
class RubyProfTest < Minitest::Test
  include RecordedProgram

  # ruby-prof counts these methods once more for the thread or fiber that begins in a block of theirs.
  BEGIN_THREADS = /\APlayer#(fibre|killed|threaded|enumerated|abandoned)\z/
  # Named otherwise (singleton and nameless classes, refinements, on 4.0 by the class they refine, methods that are blocks), told by class of receiver, or Pitwall's and ruby-prof's own.
  NAMED_OTHERWISE = /Class:|Refinement|String#loudly|#go\b|Player#defined|\.|anonymous|Exception#exception|RubyProf|\[global\]|Pitwall|Kernel#at_exit|#run_it/

  def test_the_same_calls
    load_paths = ruby_prof or skip "ruby-prof is not installed (benchmarks/run tracer/overhead does that)"
    3.times do |seed|
      File.write(file("random_calls.rb"), RandomCalls::SOURCE)
      run_program(<<~RUBY, options: load_paths.map { |path| "-I#{path}" })
        require "ruby-prof"
        load File.expand_path("random_calls.rb")
        def run_it = work(#{seed})
        profile = RubyProf::Profile.new(measure_mode: RubyProf::WALL_TIME)
        profile.profile { run_it }
        counts = Hash.new(0)
        profile.threads.each { |thread| thread.methods.each { |method| counts[method.full_name] += method.called } }
        File.write("peer", counts.map { |name, calls| [name, calls].join("\\t") }.join("\\n"))
        Pitwall.trace(record: "a.pit") { run_it }
      RUBY
      peer = File.readlines(file("peer"), chomp: true).to_h { |line| line.split("\t").then { |name, calls| [name, calls.to_i] } }
      ours = segment.calls.each_with_object(Hash.new(0)) { |row, sums| sums[segment.frame(row.node_id).name] += row.calls }
      compared = (peer.keys | ours.keys).reject { |name| name.match?(NAMED_OTHERWISE) || name.match?(BEGIN_THREADS) || name.start_with?("block ", "(", "<") }
      assert_operator compared.size, :>, 20
      assert_equal({}, compared.reject { |name| peer[name].to_i == ours[name] }.to_h { |name| [name, [peer[name], ours[name]]] }, "seed #{seed}: ruby-prof, ours")
    end
  end

  private

  # @return [Array<String>, nil]
  def ruby_prof
    bundle = File.join(Checkout::ROOT, "tmp/benchmarks-bundle")
    return unless Dir.exist?(bundle) && Dir[File.join(bundle, "#{RUBY_VERSION}-*/ruby/*/gems/ruby-prof-*")].any?

    peers = Benchmarks::Peers.new
    return if peers.missing("ruby-prof")

    %w[base64 ostruct].reject { |name| peers.missing(name) }.flat_map { |name| peers.paths(name) } + peers.paths("ruby-prof")
  end
end if RUBY_VERSION >= "3.3"
