# frozen_string_literal: true

module Benchmarks
  # Writes logs of a big application's starts in the study's form, of any length. They have files loaded through a
  # compile cache and without it, realpath walks, searches of the load path and of the autoload paths, gems listed file
  # by file, and calls that belong to no pattern. Each start loads its own version of half the files, so the paths
  # differ as in a log of many applications.
  module SyscallLogs
    GEMS = 300
    FILES = 40
    FOLDERS = 60
    private_constant :GEMS, :FILES, :FOLDERS

    module_function

    #: (String, Integer) -> void
    def write(path, lines)
      random = Random.new(42)
      written = 0
      start = 0
      File.open(path, "wb") do |out|
        while written < lines
          pieces(random, start += 1) do |piece|
            piece = piece.first(lines - written)
            out.write(piece.join("\n"), "\n")
            break if (written += piece.size) == lines
          end
        end
      end
    end

    def pieces(random, start)
      GEMS.times do |gem|
        app = gem.odd? ? "app" : "app-#{start}"
        root = "/srv/#{app}/vendor/bundle/ruby/3.4.0/gems/gem-number-#{gem}-1.#{gem % 7}.0"
        yield walk("#{root}/lib/gem-number-#{gem}.rb")
        yield listing(random) if gem % 25 == 0
        FILES.times { |file| yield feature(random, root, "gem-number-#{gem}/part_#{file}.rb", file) }
      end
    end
    private_class_method :pieces

    def feature(random, root, name, file)
      path = "#{root}/lib/#{name}"
      case file % 8
      when 0, 1, 2 then on(path, %w[open fstat64 close open fstat64 fgetxattr fgetxattr close])
      when 3
        search("open", random, name, path) + on(path, %w[fstat64 close]) + walk(path) +
          on(path, %w[open fstat64 read read close])
      when 4 then search("stat64", random, name, path) + on(path, %w[stat64 lstat64])
      when 5 then on("#{path}.yml", %w[open fstat64 fgetxattr fgetxattr close]) + walk("#{path}.yml")
      when 6 then on(path, %w[stat64 lstat64 open read close])
      else on(path, %w[stat64]) + on("#{root}/.git/objects/#{format("%02x", random.rand(256))}", %w[lstat64 close])
      end
    end
    private_class_method :feature

    def on(path, calls) = calls.map { |call| "#{call}\t#{path}" }

    def walk(path)
      slashes = path.each_char.with_index.filter_map { |char, at| at if char == "/" && at.positive? }
      slashes.map { |at| "lstat64\t#{path[0, at]}" } << "lstat64\t#{path}"
    end

    def search(call, random, name, path)
      misses = Array.new(random.rand(1..20)) do |n|
        "#{call}\t/srv/app/components/area_#{(n * 7) % FOLDERS}/app/models/#{name}"
      end
      misses << "#{call}\t#{path}"
    end

    def listing(random)
      %w[CHANGELOG MIT-LICENSE README.md].map { |name| "stat64\t#{name}" } +
        Array.new(random.rand(10..40)) { |n| "stat64\tlib/thing_#{n}.rb" }
    end
    private_class_method :on, :walk, :search, :listing
  end
end
