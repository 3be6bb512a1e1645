# frozen_string_literal: true

require "etc"
require "fileutils"
require "open3"
require "rbconfig"
require "tmpdir"
require_relative "../../script/checkout"

# Starts a PostgreSQL server for the tests. Its data and its socket are in a temporary folder. It has no TCP port.
# Where the server or the gem pg is missing, `missing` says so.
class Postgres
  GEM = ["pg", "1.6.2"].freeze
  GEMS = File.join(Checkout::ROOT, "tmp/pg", "#{RUBY_VERSION}-#{RbConfig::CONFIG["arch"]}")
  # root can't run the server. Debian's package has this user.
  USER = (Process.uid.zero? ? "postgres" : Etc.getpwuid.name)

  class << self
    # Why there is none; nil where there is one.
    #: () -> String?
    def missing
      return "no PostgreSQL server (Debian: postgresql)" if bin.nil?
      return "root needs the user postgres" if Process.uid.zero? && !user?

      paths.empty? ? "the gem pg can't be installed: see #{GEMS}.log" : nil
    end

    # Folders for the load path.
    #: () -> Array[String]
    def paths
      @paths ||= begin
        install if installed.empty?
        installed
      end
    end

    # Folder of the newest server's programs.
    #: () -> String?
    def bin
      folders = Dir["/usr/lib/postgresql/*/bin"].sort_by { |path| path[/\d+/].to_i }
      (folders.reverse + ENV["PATH"].split(":")).find { |path| File.executable?(File.join(path, "initdb")) }
    end

    private

    def user?
      !Etc.getpwnam(USER).nil?
    rescue ArgumentError
      false
    end

    def installed
      Dir["#{GEMS}/gems/pg-*/lib"] + Dir["#{GEMS}/extensions/*/*/pg-*"]
    end

    def install
      FileUtils.mkdir_p(GEMS)
      File.open("#{GEMS}.lock", File::RDWR | File::CREAT) do |lock|
        lock.flock(File::LOCK_EX)
        next if installed.any?

        name, version = GEM
        words = ["-S", "gem", "install", name, "--version", version, "--install-dir", GEMS, "--no-document"]
        output, = Open3.capture2e({ "RUBYOPT" => nil, "GEM_HOME" => nil }, RbConfig.ruby, *words)
        File.write("#{GEMS}.log", output)
      end
    end
  end

  def initialize
    @folder = Dir.mktmpdir("pitwall-pg-")
    FileUtils.chown(USER, nil, @folder) if Process.uid.zero?
    run("initdb", "-D", data, "-A", "trust", "-U", USER, "-E", "UTF8", "--no-sync", "--no-instructions")
    start
  end

  def start
    settings = "-c listen_addresses='' -c unix_socket_directories=#{@folder} -c fsync=off -c max_connections=60 " \
               "-c shared_buffers=16MB"
    run("pg_ctl", "-D", data, "-w", "-l", File.join(@folder, "log"), "-o", settings, "start")
  end

  # @param mode "immediate" is a crash
  def stop(mode = "immediate") = run("pg_ctl", "-D", data, "-w", "-m", mode, "stop")

  def remove
    stop
  ensure
    FileUtils.rm_rf(@folder)
  end

  # A URL of a new, empty database. Any password will do, as none is asked for.
  #: (String) -> String
  def url(name)
    run("createdb", "-h", @folder, "-U", USER, name)
    place(name)
  end

  def place(name) = "postgres://#{USER}:top%20secret@/#{name}?host=#{@folder}"

  private

  def data = File.join(@folder, "data")

  def run(program, *words)
    command = [File.join(self.class.bin, program), *words]
    command = ["setpriv", "--reuid=#{USER}", "--regid=#{USER}", "--clear-groups", *command] if Process.uid.zero?
    output, status = Open3.capture2e({ "LC_ALL" => "C" }, *command, chdir: @folder)
    raise "#{program}: #{output}" unless status.success?
  end
end
