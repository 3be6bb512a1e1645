# frozen_string_literal: true

# Random logs of system calls in the form of bare lines (`open\tpath`). They are full of patterns, of the first calls of
# patterns, and of sequences that differ little from a pattern.
class RandomSyscalls
  CALLS = %w[open close read stat64 lstat64 fstat64 fgetxattr pread write].freeze
  NAMES = ["a.rb", "b.rb", "xa.rb", "lib", "lib/a.rb", "lib/b", "config", "javascripts", "javascsripts",
           "README.md", "MIT-LICENSE", "c.yml", "é.rb".b, ".", "a\\b", "a b"].freeze
  FOLDERS = ["/opt", "/opt/ruby", "/opt/ruby/lib", "/usr", "/usr/lib/x86", "", "/opt/ruby/", "rel/"].freeze

  def initialize(seed) = @random = Random.new(seed)

  #: (Integer) -> Array[String]
  def lines(count)
    lines = []
    lines.concat(piece) while lines.size < count
    lines.first(count)
  end

  private

  def any(list) = list[@random.rand(list.size)]

  def path = (folder = any(FOLDERS)).empty? ? any(NAMES).dup : "#{folder.delete_suffix("/")}/#{any(NAMES)}"

  def piece
    case @random.rand(12)
    when 0 then cut(%w[open fstat64 close open fstat64 fgetxattr fgetxattr close], path)
    when 1 then cut(%w[open fstat64 fgetxattr fgetxattr close], path)
    when 2 then walk
    when 3 then scan("open")
    when 4 then scan("stat64")
    when 5 then gem
    when 6 then cut(%w[stat64 lstat64], path)
    when 7 then twice(cut(%w[open fstat64 close open fstat64], path), %w[fgetxattr fgetxattr close])
    else Array.new(@random.rand(1..4)) { "#{any(CALLS)}\t#{path}" }
    end
  end

  # Most patterns are whole. Others lack some of their calls, or have an unrelated call among them.
  def cut(calls, path)
    lines = calls.map { |call| "#{call}\t#{path}" }
    case @random.rand(6)
    when 0 then lines.first(@random.rand(1..lines.size))
    when 1 then lines.drop(@random.rand(lines.size))
    when 2 then lines.dup.tap { |found| found[@random.rand(found.size)] = "#{any(CALLS)}\t#{self.path}" }
    else lines
    end
  end

  def twice(lines, more) = lines + more.map { |call| "#{call}\t#{lines.last.split("\t", 2)[1]}" }

  def walk
    parts = Array.new(@random.rand(1..5)) { any(%w[opt ruby lib x y]) }
    lines = parts.each_index.map { |at| "lstat64\t/#{parts[0..at].join("/")}" }
    @random.rand(4).zero? ? lines.drop(1) : lines
  end

  def scan(call)
    name = any(NAMES)
    Array.new(@random.rand(1..6)) do
      folder = any(FOLDERS).delete_suffix("/")
      "#{call}\t#{folder}/#{@random.rand(8).zero? ? "x#{name}" : name}"
    end
  end

  def gem
    Array.new(@random.rand(5..14)) do
      call = any(%w[stat64 stat64 lstat64])
      "#{call}\t#{@random.rand(3).zero? ? "lib/#{any(%w[a b c d])}" : any(NAMES)}"
    end
  end
end
