# frozen_string_literal: true

# A project is copied: 120 tasks, each saved as a new record. Saving asks for all attributes several times, and each time every value is
# copied, so that nobody can change the record's own. By time the copying looks cheap; most of its price is paid by the
# garbage collector, later and elsewhere. doc/gc-cost.md walks through it.
#
#   pitwall profile --record time.pit -- ruby examples/gc_cost/copy_tasks.rb
#   pitwall allocations --stacks --record sites.pit -- ruby examples/gc_cost/copy_tasks.rb
#   pitwall report time.pit sites.pit --predict Record#clone_value
#
# The fixes, one by one: FIX=quote (values are quoted without a copy), FIX=quote,measure (and times are taken without objects).
FIXES = ENV["FIX"].to_s.split(",")

# What a record is made of.
class Record
  COLUMNS = Array.new(24) { |n| "column_#{n}" }.freeze

  def initialize(values)
    @attributes = COLUMNS.zip(values).to_h
  end

  def clone_value(name) = @attributes[name].clone

  # A copy, for those who want to change it.
  def attributes = COLUMNS.to_h { |name| [name, clone_value(name)] }

  def quoted
    return @attributes.to_h { |name, value| [name, quote(value)] } if FIXES.include?("quote")

    attributes.to_h { |name, _| [name, quote(attributes[name])] } # all of them, for each of them
  end

  def quote(value) = value.include?("'") ? value.gsub("'", "''") : value

  def save(log) = log.measure { "INSERT INTO tasks VALUES ('#{quoted.values.join("', '")}')".size }
end

# Counts what saving took.
class Log
  Times = Struct.new(:user, :system, :real)
  attr_reader :real, :taken

  def initialize
    @real = @taken = 0
    @page = ""
  end

  # The price of a stopwatch: it makes far more of a measurement than anybody reads.
  def measure
    return yield if FIXES.include?("measure")

    before = now
    result = yield
    @taken += 1
    @page = Array.new(60) { |n| "#{@taken}: #{n} " * 40 }.join
    @real += now.real - before.real
    result
  end

  def now = Times.new(*Process.times.to_a.first(2), Process.clock_gettime(Process::CLOCK_MONOTONIC))
end

# The rest of the application: what makes each collection dear.
LIVING = Array.new(300_000) { |n| "object #{n}" }
TASKS = Array.new(120) { |n| Record.new(Array.new(24) { |column| "value #{n} of column #{column}, " * 8 }) }

log = Log.new
began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
before = GC.count
12.times { TASKS.each { |task| task.save(log) } }
took = Process.clock_gettime(Process::CLOCK_MONOTONIC) - began
puts format("copied %d tasks in %.2f s, %d collections", 12 * TASKS.size, took, GC.count - before)
abort unless LIVING.size == 300_000
